"""nbgrader on these labs: the folder is a course, source/LAB/LAB.ipynb is what it generates assignments from.

nbgrader is for instructors, and is not installed with this project: pip install nbgrader. See the chapter for
instructors.
"""

from pathlib import Path

from nbgrader.converters import GenerateAssignment
from nbgrader.preprocessors import ClearSolutions

from lanewise.grading.student import given_text, lab_of
from lanewise.labs import load

c = get_config()  # noqa: F821  nbgrader provides it


class ClearLabSolutions(ClearSolutions):
    """Put in place of a solution what a student is given; nbgrader's own would show one stub everywhere."""

    def preprocess(self, nb, resources):
        lab = load(*lab_of(nb))
        for cell in nb.cells:
            part = cell.metadata.get("nbgrader", {})
            if part.get("solution"):
                cell.source = given_text(lab, part["grade_id"], cell.source)
        return nb, resources


c.CourseDirectory.course_id = "lanewise"
c.CourseDirectory.root = str(Path(__file__).resolve().parent)
own = [ClearLabSolutions if step is ClearSolutions else step for step in GenerateAssignment().preprocessors]
c.GenerateAssignment.preprocessors = own
c.ClearSolutions.enforce_metadata = False
