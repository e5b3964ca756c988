import EventLoop

/// Renewed heads that are not in the book yet. Readers take them from here until they are.
final class DiskStoreRenewals: Sendable {
    struct Renewal: Sendable {
        var attributes: ObjectAttributes
        var head: [UInt8]
        /// Increases with each renewal of the store.
        var serial: UInt64
    }
    private struct State {
        var waiting: [ObjectID: Renewal] = [:]
        var lastSerial: UInt64 = 0
    }
    private let state = Locked(State())

    /// Beyond this number renewals are dropped, which happens if the book cannot be written. A dropped renewal costs one more
    /// validation of the object.
    static let countMax = 1 << 16

    /// - Returns: the serial number. Nil if the renewal was dropped.
    func add(_ id: ObjectID, _ attributes: ObjectAttributes, head: [UInt8]) -> UInt64? {
        state.withLock { state in
            guard state.waiting.count < Self.countMax || state.waiting[id] != nil else { return nil }
            state.lastSerial += 1
            state.waiting[id] = Renewal(attributes: attributes, head: head, serial: state.lastSerial)
            return state.lastSerial
        }
    }

    func latest(of id: ObjectID) -> Renewal? { state.withLock { $0.waiting[id] } }

    /// Removes a renewal: it is in the book, or the object is gone.
    /// - Parameter serial: a later renewal stays. Nil: none stays.
    func forget(_ id: ObjectID, through serial: UInt64? = nil) {
        state.withLock { state in
            precondition(serial.map { $0 <= state.lastSerial } ?? true, "serial numbers come from here")
            guard let known = state.waiting[id]?.serial, serial.map({ known <= $0 }) ?? true else { return }
            state.waiting[id] = nil
        }
    }

    /// The last serial number given out.
    var lastSerial: UInt64 { state.withLock { $0.lastSerial } }
}
