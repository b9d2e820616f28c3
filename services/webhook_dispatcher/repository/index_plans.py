"""Settings of a transaction whose statements read a few rows at the ends of indexes.

The planner cannot know of an unknown limit that they are few, and planning a page anew, over the partitions of all
days, costs PostgreSQL as much as reading it.
"""

from __future__ import annotations

from sqlalchemy import func, select, true

BY_INDEX = select(
    *(
        func.set_config(name, value, true())
        for name, value in (
            ("plan_cache_mode", "force_generic_plan"),
            ("enable_seqscan", "off"),
            ("enable_bitmapscan", "off"),
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
            ("enable_sort", "off"),
            ("enable_incremental_sort", "off"),
        )
    )
)
