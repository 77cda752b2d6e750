"""How does it run on Spark?"""

from .requires_pyspark import need_pyspark

need_pyspark()
