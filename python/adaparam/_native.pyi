"""The native part: kernels on memory that tensors and arrays own. For this package alone; its addresses are not checked."""

Numbers = tuple[int, int]

class Stack:
    def __init__(self, description: str) -> None: ...
    @property
    def d_input(self) -> int: ...
    @property
    def d_output(self) -> int: ...
    @property
    def parameters(self) -> list[tuple[str, list[int]]]: ...
    @property
    def state_widths(self) -> list[int]: ...
    @property
    def sites(self) -> list[tuple[str, list[int]]]: ...

class Layer:
    def __init__(self, description: str) -> None: ...
    @property
    def d_output(self) -> int: ...
    @property
    def parameters(self) -> list[list[int]]: ...

class Owner:
    def __init__(self) -> None: ...
    @property
    def id(self) -> int: ...

class Vocabulary:
    def __init__(self, place: str, content: str) -> None: ...
    def __len__(self) -> int: ...
    @property
    def tokens(self) -> str: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def line_end(self) -> int: ...
    @property
    def unknown(self) -> int | None: ...
    def encode(self, text: str) -> tuple[list[int], list[str]]: ...
    def decode(self, ids: list[int]) -> bytes: ...

def forward(
    stack: Stack,
    owner: int,
    threads: int,
    precision_name: str,
    x: Numbers,
    steps: int,
    batch: int,
    weights: list[Numbers],
    versions: list[int],
    state: list[Numbers],
    masks: list[Numbers | None],
    lengths: list[int] | None,
    output: Numbers,
    finals: list[Numbers],
    keep: bool,
) -> object | None: ...
def backward(
    stack: Stack,
    owner: int,
    threads: int,
    precision_name: str,
    x: Numbers,
    steps: int,
    batch: int,
    weights: list[Numbers],
    state: list[Numbers],
    masks: list[Numbers | None],
    lengths: list[int] | None,
    tape_address: int,
    d_output: Numbers,
    d_finals: list[Numbers],
    d_x: Numbers,
    d_state: list[Numbers],
    d_weights: list[Numbers],
) -> None: ...
def inspect(
    stack: Stack, threads: int, x: Numbers, steps: int, batch: int, weights: list[Numbers], state: list[Numbers]
) -> list[tuple[str, int, bytearray]]: ...
def rows_forward(
    layer: Layer,
    owner: int,
    threads: int,
    x: Numbers,
    context: Numbers | None,
    count: int,
    parameters: list[Numbers],
    versions: list[int],
    output: Numbers,
    keep: bool,
) -> object | None: ...
def rows_backward(
    layer: Layer,
    owner: int,
    threads: int,
    x: Numbers,
    context: Numbers | None,
    count: int,
    parameters: list[Numbers],
    output: Numbers,
    tape_address: int,
    d_output: Numbers,
    d_x: Numbers | None,
    d_context: Numbers | None,
    d_parameters: list[Numbers],
) -> None: ...
def free_memory() -> None:
    """Frees the memory that waits for calls, of all modules."""

def waiting() -> int: ...
def kept_passes() -> int: ...
