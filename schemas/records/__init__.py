"""The records that steps hand to one another, before they become rows."""
