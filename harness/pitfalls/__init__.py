"""Documented traps as data: what each is about, under which conditions, and what to use instead."""
