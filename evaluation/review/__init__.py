"""People look at a dataset and decide: tasks for reviewers, their votes, and what follows."""
