"""Grading: from submitted notebooks to a table of marks, and from a lab's source to what students get.

No part of a submission is executed: its functions are read as text and traced.

- `student`: the student's notebook, and variants with their keys, from a lab's source notebook.
"""
