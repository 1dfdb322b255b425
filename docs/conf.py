"""How the site is built: Sphinx with MyST (Markdown) and the theme furo. See `make docs`."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

from diw._version import __version__

project = "diw"
author = "The diw developers"
project_copyright = "the diw developers, MIT licence"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "command_help",
    "docstrings",
    "mathml",
    "methods_of_diw",
    "repository",
]
exclude_patterns = ["_build", "README.md", "gallery/**.ipynb", "gallery/**.py"]

# Markdown
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3
math_number_all = False

# API reference: docstrings in Google's style, in which `name` may be a reference
default_role = "py:obj"
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
autoclass_content = "both"
autodoc_inherit_docstrings = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_attr_annotations = False
python_maximum_signature_line_length = 90

# Gallery: every script of examples/, run with the build
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "gallery_order.GalleryOrder",
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": 3600,
    "remove_config_comments": True,
    "plot_gallery": True,
    "abort_on_example_error": True,
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "capture_repr": (),
    "copyfile_regex": r".*\.ipynb",
}

# HTML: everything local, so that it works from disk
html_theme = "furo"
html_title = "diw"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_favicon = "_static/mark.svg"
html_theme_options = {
    "light_logo": "mark.svg",
    "dark_logo": "mark.svg",
    "navigation_with_keys": True,
    "light_css_variables": {
        "color-brand-primary": "#0b6e99",
        "color-brand-content": "#0b6e99",
        "color-brand-visited": "#0b6e99",
    },
    "dark_css_variables": {
        "color-brand-primary": "#6cc4ea",
        "color-brand-content": "#6cc4ea",
        "color-brand-visited": "#6cc4ea",
    },
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
