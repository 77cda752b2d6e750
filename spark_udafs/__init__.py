"""How does it run on Spark?"""

from .extra import need_pyspark

need_pyspark()
