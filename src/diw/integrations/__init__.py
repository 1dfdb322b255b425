"""The objective in other libraries: scikit-learn, Lightning, Hugging Face.

Each module needs the extra of its name and is imported by whoever uses it.
"""


def missing(package: str, extra: str) -> ImportError:
    """The error for an optional package that is not installed.

    Args:
        package: Its name.
        extra: The extra of diw that installs it.
    """
    return ImportError(f"{package} is not installed: pip install 'diw[{extra}]'")
