"""The presets: the parameters of four cores, and of the blocks alone as these cores have them."""

from golden.spec.sizes import CoreSizes, spmm_array_of, words_for

__all__ = ["BUSES", "CORES", "MIXED_PRECISION", "PRESETS", "blocks_of"]

# tiny is for quick tests; disc has the size of one core of the DiSC paper (64 dot-product units of 64 lanes).
CORES = {
    "tiny": {
        "n_banks": 4,
        "n_lanes": 4,
        "simd_lanes": 4,
        "max_tokens": 64,
        "max_head_dim": 16,
        "max_dim": 32,
        "imem_depth": 512,
        "wmem_depth": 256,
        "vmem_depth": 128,
        "omem_depth": 1024,
        "pmem_depth": 64,
        "latent_width": 16,
        "latent_height": 16,
        "channels": 3,
        "patch": 2,
    },
    "small": {
        "n_banks": 8,
        "n_lanes": 8,
        "simd_lanes": 8,
        "max_tokens": 128,
        "max_head_dim": 32,
        "max_dim": 64,
        "imem_depth": 2048,
        "wmem_depth": 512,
        "vmem_depth": 256,
        "omem_depth": 2048,
        "latent_width": 32,
        "latent_height": 16,
        "channels": 3,
        "patch": 2,
    },
    "edge": {
        "n_banks": 16,
        "n_lanes": 16,
        "simd_lanes": 16,
        "vector_lanes": 8,
        "special_lanes": 4,
        "max_tokens": 256,
        "max_head_dim": 64,
        "max_dim": 512,
        "imem_depth": 16384,
        "wmem_depth": 2048,
        "vmem_depth": 256,
        "omem_depth": 4096,
        "n_masks": 3,
        "latent_width": 32,
        "latent_height": 32,
        "channels": 3,
        "patch": 2,
    },
    "disc": {
        "n_banks": 64,
        "n_lanes": 64,
        "simd_lanes": 8,
        "vector_lanes": 16,
        "special_lanes": 4,
        "max_tokens": 1024,
        "max_head_dim": 128,
        "max_dim": 1152,
        "imem_depth": 1280,
        "wmem_depth": 64,
        "vmem_depth": 32,
        "omem_depth": 256,
        "pmem_depth": 768,
        "n_masks": 3,
        "mask_depth": 16,
        "latent_width": 64,
        "latent_height": 64,
        "channels": 4,
        "patch": 2,
    },
}


BUSES = {
    "tiny": {"data_width": 64},
    "small": {"data_width": 128},
    "edge": {"data_width": 256, "address_width": 40},
    "disc": {"data_width": 512, "address_width": 40},
}
"""The bus of the accelerator with each of these cores."""


def blocks_of(core, bus):
    """``{block: parameters}`` of every block as a core with these sizes has it.

    The sizes follow; how a block is used does not, where it can do more than the core asks of it: the mapper works in
    both directions, with a constant multiplier, and the token selector compares with the step before.
    """
    p = CoreSizes(**core)
    return {
        "dot_product_unit": {"n_lanes": p.n_lanes},
        "vector_unit": {"n_engines": p.n_banks, "n_lanes": p.simd_lanes, "bank_depth": p.vmem_depth},
        "token_selector": {
            "width": p.latent_width,
            "height": p.latent_height,
            "channels": p.channels,
            "patch": p.patch,
            "n_values": p.n_banks,
        },
        "hash_bank_mapper": {"n_columns": 1 << p.hash_width, "n_banks": p.n_banks},
        "bitonic_sorter": {"n": p.n_banks},
        "dot_product_array": {
            "n_units": p.n_banks,
            "n_lanes": p.n_lanes,
            "n_slots": p.array_slots,
            "max_beats": p.max_beats,
            "weight_depth": p.wmem_depth,
            "query_beats": p.query_beats,
            "run_ahead": p.run_ahead,
            "wide_score": p.pmem_depth > 0,
        },
        "spmm_array": spmm_array_of(p),
        "softmax_unit": {"n_banks": p.n_banks, "n_slots": p.key_slots},
        "layer_norm_unit": {
            "n_lanes": p.n_vector_lanes,
            "n_slots": words_for(p.max_dim, p.row_word) * p.row_word // p.n_vector_lanes,
        },
        "data_aligner": {"n": p.n_banks},
        "core": core,
        "accelerator": {**core, **bus},
    }


def mixed_precision_blocks(n_rows, n_channels, n_output_lanes, core_lanes, n_buffers=4, n_tiles=8):
    """``{block: parameters}`` of DSTAR's blocks, as many columns as rows; ``disc`` is one core of the paper.

    The core holds four times n_channels activations and references: a hidden layer of that size. The array and ACTIVATE
    share its memory of outputs, so it has more output lanes.
    """
    depth = 4 * n_channels
    return {
        "quantizer_unit": {"n_values": n_rows, "n_channels": n_channels},
        "mixed_precision_array": {
            "n_rows": n_rows,
            "n_columns": n_rows,
            "n_channels": n_channels,
            "weight_depth": 2 * n_channels,
            "n_output_lanes": n_output_lanes,
        },
        "mixed_precision_core": {
            "n_rows": n_rows,
            "n_columns": n_rows,
            "n_channels": n_channels,
            "n_output_lanes": core_lanes,
            "n_buffers": n_buffers,
            "n_tiles": n_tiles,
            "activation_depth": depth,
            "reference_depth": depth + n_channels,
        },
    }


MIXED_PRECISION = {
    "tiny": mixed_precision_blocks(4, 8, 4, core_lanes=2),
    "small": mixed_precision_blocks(8, 32, 4, core_lanes=4),
    "edge": mixed_precision_blocks(16, 128, 4, core_lanes=8, n_buffers=5, n_tiles=40),
    "disc": mixed_precision_blocks(64, 128, 64, core_lanes=64, n_buffers=5, n_tiles=10),
}

PRESETS = {name: blocks_of(core, BUSES[name]) | MIXED_PRECISION[name] for name, core in CORES.items()}
