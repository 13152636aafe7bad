SELECT process, origin, timeline, seen_at, is_synchronous, vouches FROM hapax.processes ORDER BY process
