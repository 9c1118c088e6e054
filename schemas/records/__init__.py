"""The records that steps pass to one another before they become rows."""
