"""The observer: reads ground truth and alone says whether an effect happened.

Published for others: ``observer.sighting``.
"""
