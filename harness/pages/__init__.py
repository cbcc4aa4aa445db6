"""The report as one HTML page that opens without a network: what it says in Python, how it looks in ``assets``."""
