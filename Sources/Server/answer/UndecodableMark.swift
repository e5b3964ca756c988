import Synchronization

/// Remembers that inflating a stored body failed, so that it is not tried again.
///
/// All stored responses over one body share it: those that a validation renewed, too. Any worker may set it while others read it, and
/// nobody takes it back.
final class UndecodableMark: Sendable {
    private let flag = Atomic<Bool>(false)

    var isSet: Bool { flag.load(ordering: .relaxed) }

    func set() { flag.store(true, ordering: .relaxed) }
}
