"""What a contract is worth: by the exchange's own file of instruments, or by the symbol's name."""
