"""Grading: from submitted notebooks to a table of marks, and from a lab's source to what students get.

No part of a submission is executed: its answers are read as text, and its kernels are traced. The way of a
class through the modules:

- `submissions`: the files of a folder or zip; `students`: whose each is, by its path
- `notebook`: a file as cells; `locate`: which lab it is and which cells hold the answers, also where
  an editor has lost that
- `reading`: an answer from the text of its cell; `marking`: one submission to one `Marked` row
- `limits`: time and memory of one; `classroom`: many, over processes
- `status`: what the status column says; `table`: the rows as files; `feedback`: the page for a student
- `plain`: strangers' text, made safe to show
- `student`: the student's notebook, and variants with their keys, from a lab's source notebook; `variants`
  writes them
"""
