"""A build's variants, provenance, recognition, recipes and cache; the catalogue and the baselines of branches."""
