import Synchronization

/// Records that inflating a stored body failed, so that no worker tries again.
///
/// All stored responses with the same body share the mark, those renewed by a validation included. Any worker may set it while others
/// read it. It is never cleared.
final class UndecodableMark: Sendable {
    private let flag = Atomic<Bool>(false)

    var isSet: Bool { flag.load(ordering: .relaxed) }

    func set() { flag.store(true, ordering: .relaxed) }
}
