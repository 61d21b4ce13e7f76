"""The commands of the vector unit: SPMM, ELEMENTWISE, LAYER_NORM."""
