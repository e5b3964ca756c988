import Forwarding
import Origins

extension OutgoingRequest {
    /// Makes the change that a rule asks for. It may be made for any field that no objection is known for.
    mutating func apply(_ change: FieldChange) {
        switch change.operation {
        case .set:
            removeLines(of: change)
            add(spelling: change.spelling, change.value)
        case .add: add(spelling: change.spelling, change.value)
        case .remove: removeLines(of: change)
        }
    }

    private mutating func removeLines(of change: FieldChange) {
        if change.name == .other { remove(spelling: change.spelling) } else { remove(change.name) }
    }
}
