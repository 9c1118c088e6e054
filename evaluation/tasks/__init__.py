"""What `eqforge metrics` can measure: a record a task, and what is really a task's own."""
