"""The gate: from journals and a policy to one decision, with why."""
