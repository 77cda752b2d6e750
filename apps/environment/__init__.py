"""What the apps need from the machine: Java, caches, compiled kernels, packed environments."""
