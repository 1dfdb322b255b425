"""The order of the gallery: from the most common problem to the frameworks."""

ORDER = (
    *("symmetric_noise", "table_suspects", "own_loop", "class_prior", "covariate_shift"),
    *("scikit_learn", "lightning_module", "hugging_face", "weights_only"),
)


class GalleryOrder:
    """A key for sphinx-gallery, by the name of a script; new ones come last."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, filename: str) -> tuple[int, str]:
        """The place of a script, and its name."""
        name = filename.removesuffix(".py")
        return (ORDER.index(name) if name in ORDER else len(ORDER), name)
