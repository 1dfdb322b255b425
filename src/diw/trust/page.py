"""`check.html`: one file in which a person says what is right, one row at a time.

It needs no network, and its Content-Security-Policy allows none. Answers are kept by the browser,
and saved as `verified.csv`.
"""

import hashlib
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from diw.auditing.samples import Samples
from diw.pages import asset, count, html_page, inline_policy, script_json
from diw.trust.draw import Draw
from diw.trust.sheet import Answers

PAGE = "check.html"


def render(
    draw: Draw,
    shown: Samples,
    drawn: Sequence[float],
    *,
    text: int | None = None,
    answers: Answers | None = None,
    show_given: bool = False,
) -> str:
    """The page's HTML.

    Args:
        draw: What was drawn.
        shown: What all those rows hold.
        drawn: (m,) the probabilities with which they were drawn.
        text: The number of the column that is shown as a text.
        answers: What is known already, as the page saved it.
        show_given: Whether the given label is shown before an answer.
    """
    scripts = asset("diw.trust", "check.js")
    content = script_json(_content(draw, shown, drawn, text, answers or {}, show_given))
    name = escape(Path(draw.source).name)
    what = count(len(draw.rows), "image" if shown.images is not None else "row")
    seen = "the given label is shown" if show_given else "the given label is shown after that"
    header = f"""<p class="kicker">diw trust</p>
<h1>What is the right label?</h1>
<p class="private"><b>This file holds {what} of {name}.</b> Share it only with those who may see
them. Choose by what you see; {seen}.
<span id="kept">Answers are kept in this browser.</span></p>"""
    body = """<section class="desk" aria-label="Check">
<div class="toolbar">
<progress id="bar" value="0" max="1" aria-label="Checked"></progress>
<output id="done"></output>
<span class="ends"><button type="button" id="again" hidden>Look again</button>
<button type="button" id="save">Save verified.csv</button></span>
</div>
<div class="table">
<div class="stage">
<p id="number"></p>
<div id="sample" aria-live="polite"></div>
<div class="turns"><button type="button" id="back" aria-label="The row before">←</button>
<p id="where"></p><button type="button" id="next" aria-label="The next row">→</button></div>
</div>
<div>
<p id="given"></p>
<label id="finder">Search <input type="search" id="search" autocomplete="off"></label>
<div id="classes" role="group" aria-label="The right label"></div>
<div class="notes" role="group" aria-label="Or">
<button type="button" id="unsure" aria-pressed="false"><kbd>x</kbd> Not sure</button>
<button type="button" id="cannot" aria-pressed="false"><kbd>c</kbd> Cannot tell</button>
<button type="button" id="drop" aria-pressed="false"><kbd>d</kbd> Drop</button>
<button type="button" id="undo"><kbd>u</kbd> Undo</button>
</div>
<p id="said" role="status"></p>
</div>
</div>
<p class="note keys">Keys: those beside the classes; <kbd>x</kbd> before a class: not sure, to be
looked at again; <kbd>c</kbd> cannot tell; <kbd>d</kbd> drop; <kbd>u</kbd> undo; arrows move;
<kbd>/</kbd> search, and Enter takes the first.</p>
<noscript><p>This page needs JavaScript, all of which is inside it. The same rows are in
check.csv.</p></noscript>
</section>"""
    return html_page(
        f"Check {Path(draw.source).name}",
        policy=inline_policy([scripts], img="data:"),
        header=header,
        body=body,
        style=asset("diw.trust", "check.css"),
        scripts=f'<script type="application/json" id="rows">{content}</script>\n'
        f"<script>{scripts}</script>\n",
        made_from="your data, for your eyes",
    )


def _content(
    draw: Draw,
    shown: Samples,
    drawn: Sequence[float],
    text: int | None,
    answers: Answers,
    show_given: bool,
) -> dict[str, Any]:
    """What the page's script reads."""
    first = len(draw.rounds[0].rows)
    named = repr((draw.source, draw.label, draw.classes, draw.rows[:first], draw.contents[:first]))
    rows: list[dict[str, Any]] = []
    for place, (file, row) in enumerate(draw.places):
        said = answers.get(place)
        rows.append(
            {
                "key": f"{place} {draw.contents[place]}",
                "file": file,
                "row": row,
                "given": draw.given[place],
                "drawn": f"{drawn[place]:.6g}",
                "content": draw.contents[place],
                "answer": None if said is None else {"right": said.right, "note": said.note},
            }
        )
    return {
        "id": hashlib.sha256(named.encode()).hexdigest()[:16],
        "classes": list(draw.classes),
        "rows": rows,
        "images": shown.images,
        "columns": shown.columns,
        "cells": shown.cells,
        "text": text,
        "show_given": show_given,
    }
