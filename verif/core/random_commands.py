"""Random commands, most of which are nearly right, so that every reason to refuse one comes first now and then."""

from golden.spec.commands import FLAGS, Command, Opcode, flags_of, forms_of
from golden.spec.operands import Matrix

__all__ = ["random_command"]


def random_command(rng, sizes):
    """A command whose fields are legal by themselves most of the time; whether they fit together is left to chance."""

    def small(high):
        """From 1 to high, often one of the two, now and then 0 or too large."""
        kind = rng.random()
        if kind < 0.04:
            return int(rng.choice([0, high + 1, 65535]))
        return int(high if kind < 0.15 else 1 if kind < 0.3 else rng.integers(1, high, endpoint=True))

    def place(depth):
        kind = rng.random()
        return int(rng.integers(0, 65536) if kind < 0.03 else 0 if kind < 0.3 else rng.integers(0, max(1, depth // 2)))

    opcode = int(rng.integers(0, 256)) if rng.random() < 0.03 else int(rng.choice(list(Opcode)))
    forms = forms_of(opcode)
    flags = sum(FLAGS[name] for name in (flags_of(opcode) if forms else ()) if rng.random() < 0.4)
    if rng.random() < 0.03:
        flags ^= 1 << int(rng.integers(0, 8))
    function = int(rng.choice([number for form in forms for number in form.functions] or [0, 1]))
    if rng.random() < 0.06:
        function = int(rng.integers(0, rng.choice([20, 256])))
    bounds = {name: bound for form in forms for name, bound in form.bounds.items()}

    def highest(name):
        """Of a size that is bounded by the tokens, no more than a head's dimension: so keys often fit."""
        _, size = bounds.get(name, (0, "max_dim"))
        return min(sizes.max_tokens, sizes.max_head_dim) if size == "max_tokens" else getattr(sizes, size)

    longest = -(-sizes.max_dim // sizes.row_word)
    stride = [int(rng.integers(0, 4 * longest)) if rng.random() < 0.1 else longest for _ in range(3)]
    is_in_imem = any(isinstance(operand, Matrix) for form in forms for operand in form.writes)
    depths = (sizes.imem_depth, sizes.imem_depth if is_in_imem else min(sizes.wmem_depth, sizes.vmem_depth))
    return Command(
        opcode=opcode,
        function=function,
        flags=flags,
        mask=int(rng.integers(0, 16) if rng.random() < 0.04 else rng.integers(0, sizes.n_masks)),
        mask_out=int(rng.integers(0, 16) if rng.random() < 0.04 else rng.integers(0, sizes.n_masks)),
        n_rows=small(sizes.max_tokens),
        n_in=small(highest("n_in")),
        n_out=small(highest("n_out")),
        multiplier=int(rng.integers(0, 65536)),
        source=place(depths[0]),
        source_stride=stride[0],
        source_2=place(sizes.imem_depth),
        source_2_stride=0 if rng.random() < 0.05 else stride[1],
        destination=min(65535, place(depths[1]) + (depths[1] // 2 if is_in_imem and rng.random() < 0.7 else 0)),
        destination_stride=stride[2],
        bank_address=place(min(sizes.wmem_depth, sizes.vmem_depth)),
        theta=int(rng.integers(0, 65536)),
        scale=int(rng.integers(0, 1 << 19)),
        column=int(rng.choice([sizes.row_word, sizes.n_banks, sizes.simd_lanes, 1])) if rng.random() < 0.1 else 0,
        first_row=small(sizes.max_tokens) if rng.random() < 0.2 else 0,
    )
