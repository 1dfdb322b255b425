"""The benchmarks of the paper: where they come from and what their files must hold.

Digests are of the contents: a gzip header may differ (Debian packs anew), the
data may not. CIFAR is read from its binary version, which needs no unpickling.
"""

from dataclasses import dataclass
from typing import Literal

from diw.errors import UsageError


@dataclass(frozen=True)
class DataFile:
    """One file of a data set.

    Attributes:
        name: Inside the data set's folder.
        size: Bytes, after gunzipping for `.gz`.
        digest: `algorithm:hexadecimal` of these bytes.
    """

    name: str
    size: int
    digest: str


@dataclass(frozen=True)
class Download:
    """One file at its official address; an archive holds all files of the data set."""

    url: str
    md5: str


@dataclass(frozen=True)
class Benchmark:
    """One data set by name.

    Attributes:
        folder: The name of its folder under any root.
        format: `idx` (images and labels apart) or `cifar` (records of labels and pixels).
        label_bytes: For `cifar`: bytes before the pixels; the last of them is the label.
        train, test: Its files, for `idx` images before labels.
    """

    name: str
    title: str
    folder: str
    format: Literal["idx", "cifar"]
    classes: tuple[str, ...]
    train: tuple[DataFile, ...]
    test: tuple[DataFile, ...]
    downloads: tuple[Download, ...]
    label_bytes: int = 1

    @property
    def files(self) -> tuple[DataFile, ...]:
        """All of its files."""
        return self.train + self.test


_ZALANDO = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
_TORONTO = "https://www.cs.toronto.edu/~kriz"

_FASHION_CLASSES = (
    "T-shirt/top, Trouser, Pullover, Dress, Coat, Sandal, Shirt, Sneaker, Bag, Ankle boot"
)

FASHION_MNIST = Benchmark(
    name="fashion-mnist",
    title="60,000 + 10,000 grey images 28 x 28, 10 classes (MIT)",
    folder="fashion-mnist",
    format="idx",
    classes=tuple(_FASHION_CLASSES.split(", ")),
    train=(
        DataFile(
            "train-images-idx3-ubyte.gz",
            47_040_016,
            "sha256:c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        ),
        DataFile(
            "train-labels-idx1-ubyte.gz",
            60_008,
            "sha256:bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        ),
    ),
    test=(
        DataFile(
            "t10k-images-idx3-ubyte.gz",
            7_840_016,
            "sha256:5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        ),
        DataFile(
            "t10k-labels-idx1-ubyte.gz",
            10_008,
            "sha256:0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
    ),
    downloads=(
        Download(f"{_ZALANDO}/train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        Download(f"{_ZALANDO}/train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
        Download(f"{_ZALANDO}/t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
        Download(f"{_ZALANDO}/t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
    ),
)

_CIFAR_10_SHA256 = (
    "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
)

_CIFAR_10_CLASSES = "airplane automobile bird cat deer dog frog horse ship truck"

CIFAR_10 = Benchmark(
    name="cifar-10",
    title="50,000 + 10,000 colour images 32 x 32, 10 classes",
    folder="cifar-10-batches-bin",
    format="cifar",
    classes=tuple(_CIFAR_10_CLASSES.split()),
    train=tuple(
        DataFile(f"data_batch_{number}.bin", 30_730_000, f"sha256:{digest}")
        for number, digest in enumerate(_CIFAR_10_SHA256, start=1)
    ),
    test=(
        DataFile(
            "test_batch.bin",
            30_730_000,
            "sha256:8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
        ),
    ),
    downloads=(Download(f"{_TORONTO}/cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530"),),
)

_CIFAR_100_CLASSES = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly
camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup
dinosaur dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower
leopard lion lizard lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid
otter palm_tree pear pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray
road rocket rose sea seal shark shrew skunk skyscraper snail snake spider squirrel streetcar
sunflower sweet_pepper table tank telephone television tiger tractor train trout tulip turtle
wardrobe whale willow_tree wolf woman worm
"""

CIFAR_100 = Benchmark(
    name="cifar-100",
    title="50,000 + 10,000 colour images 32 x 32, 100 classes",
    folder="cifar-100-binary",
    format="cifar",
    classes=tuple(_CIFAR_100_CLASSES.split()),
    label_bytes=2,
    train=(DataFile("train.bin", 153_700_000, "sha1:e207cd2e05b73b1393c74c7f5e7bea451d63e08e"),),
    test=(DataFile("test.bin", 30_740_000, "sha1:8fb6623e830365ff53cf14adec797474f5478006"),),
    downloads=(
        Download(f"{_TORONTO}/cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8"),
    ),
)

BENCHMARKS = {each.name: each for each in (FASHION_MNIST, CIFAR_10, CIFAR_100)}
"""Every benchmark by name."""


def get_benchmark(name: str) -> Benchmark:
    """The benchmark of that name; another name is refused with the choices."""
    if name not in BENCHMARKS:
        raise UsageError(f"data: unknown data set {name!r}; choose {', '.join(BENCHMARKS)}")
    return BENCHMARKS[name]
