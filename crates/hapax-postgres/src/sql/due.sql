(SELECT id, look_at FROM hapax.unfinished WHERE look_at <= (SELECT hapax.clock()) ORDER BY look_at LIMIT $1)
UNION ALL
-- No lease ends as late as this, unless it was given by a clock that was ahead.
(SELECT id, look_at FROM hapax.unfinished WHERE look_at > (SELECT hapax.clock()) + $2::int8 ORDER BY look_at DESC LIMIT $1)
