"""The value of a contract, from the exchange's file of instruments or from the symbol."""
