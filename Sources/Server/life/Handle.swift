/// A weak reference that may travel in a job for this thread's own inbox.
///
/// Not for workers, connections and what lives on them: an object that was ever referenced weakly is counted the slow
/// way for the rest of its life.
package struct Handle<Object: AnyObject>: @unchecked Sendable {
    package weak var value: Object?
    package init(_ value: Object) { self.value = value }
}

/// A worker, for jobs in its own inbox: they run on its thread while it lives, or never.
@safe struct WorkerReference: @unchecked Sendable {
    private unowned(unsafe) let reference: Worker
    init(_ worker: Worker) { unsafe reference = worker }
    var value: Worker { unsafe reference }
}
