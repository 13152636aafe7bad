package dev.hapax.once;

/** An operation whose work this thread is doing, in a transaction of its own. */
record UnderWay(Runner runner, Operation operation, UnderWay outer) {
    private static final ThreadLocal<UnderWay> HERE = new ThreadLocal<>();

    /** Refuses what is inside of the work of another call, and would be committed without it. */
    static UnderWay enter(Runner runner, Operation operation) {
        UnderWay outer = HERE.get();
        for (UnderWay at = outer; at != null; at = at.outer) {
            if (at.runner == runner || at.operation.isNamedLike(operation)) {
                throw new HapaxException.Nested();
            }
        }
        UnderWay entered = new UnderWay(runner, operation, outer);
        HERE.set(entered);
        return entered;
    }

    void leave() {
        if (outer == null) {
            HERE.remove();
        } else {
            HERE.set(outer);
        }
    }
}
