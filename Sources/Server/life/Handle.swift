/// A weak reference that may travel in a job for the inbox of the thread that made it.
///
/// Not for workers and connections: reference counting of an object becomes slower for good once there was a weak reference to it.
package struct Handle<Object: AnyObject>: @unchecked Sendable {
    package weak var value: Object?
    package init(_ value: Object) { self.value = value }
}

/// A reference to a worker for jobs in that worker's own inbox. Such a job runs on the worker's thread while the worker lives, or never,
/// so the reference needs no counting.
@safe struct WorkerReference: @unchecked Sendable {
    private unowned(unsafe) let reference: Worker
    init(_ worker: Worker) { unsafe reference = worker }
    var value: Worker { unsafe reference }
}
