"""How kernels are compiled, stored on disk and linked."""
