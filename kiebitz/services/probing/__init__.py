"""The runner of `kiebitz probe`: test cases on a live target, and their results."""
