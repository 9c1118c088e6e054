"""Review a dataset with people: tasks for reviewers, their votes, and the decisions from them."""
