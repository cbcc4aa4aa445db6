"""Why a case ended as it did, from its journal: one case in all its parts, or what the reds of a night share."""
