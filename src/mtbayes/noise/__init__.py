"""What dirty rows look like beside a predictive: how many there are, and which they are.

A row is good with probability 1-ε and then follows the predictive, else it is wrong and follows a
noise law. All laws here are fitted by maximum likelihood on rows that the predictive has not been
trained on, and all calibrate the predictive on the way: a fit at t < 1 is too sure of itself (in
the limit it is the escort of order 1/t of what it has seen), and wrong rows would hide by how much.

- `WrongLabels`: a wrong label is any other class, each as likely, or drawn from p(given | true)
  where rows clearly say so. It is as likely in all rows, or, where they clearly say so, more likely
  in those that the predictive is in doubt about: a fit that has seen many wrong labels somewhere is
  unsure there. The predictive is sharpened or flattened by a temperature.
- `WrongTargets`: a wrong target comes from a mixture of three laws that know nothing of x: uniform
  over the range of the targets, their marginal, a wide Cauchy. The spread of the members is scaled.
- `WrongPoints`: a wrong row of a density is uniform over the box of the rows, or comes from wide
  Cauchys, one a column, as often. The spread of the members is scaled.
"""

from mtbayes.noise.labels import WrongLabels
from mtbayes.noise.points import PointPredictive, WrongPoints
from mtbayes.noise.shares import Contamination, mixture_shares
from mtbayes.noise.targets import WrongTargets

__all__ = [
    "Contamination",
    "PointPredictive",
    "WrongLabels",
    "WrongPoints",
    "WrongTargets",
    "mixture_shares",
]
