-- Who plans which segment. A row belongs to the node that it names while that node's lease runs; the fence
-- grows with every change of hands, so that a plan made under an earlier one is refused.
CREATE TABLE segments (
    segment INTEGER PRIMARY KEY,
    node_id INTEGER,
    fence   INTEGER NOT NULL DEFAULT 0
);
