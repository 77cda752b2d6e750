"""How are tables of sketches and running groups asked?"""
