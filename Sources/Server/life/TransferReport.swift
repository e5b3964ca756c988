/// Names a transfer that is under way, in this process.
///
/// As text `f0-12-3`: the kind, the number of the worker, and the place there. Its numbers are used again when the transfer is over, but for another
/// generation, so a name never finds another transfer.
package struct TransferID: Hashable, Sendable {
    package enum Kind: Character, Sendable {
        case fetch = "f"
        case tunnel = "t"
    }
    package let kind: Kind
    package let worker: Int
    package let place: ConnectionID

    package init(_ kind: Kind, worker: Int, place: ConnectionID) {
        self.kind = kind
        self.worker = worker
        self.place = place
    }
}

extension TransferID: LosslessStringConvertible {
    package init?(_ text: String) {
        guard let first = text.first, let kind = Kind(rawValue: first) else { return nil }
        let numbers = text.dropFirst().split(separator: "-", omittingEmptySubsequences: false)
        guard numbers.count == 3, let worker = UInt16(numbers[0]), let slot = UInt32(numbers[1]),
            let generation = UInt32(numbers[2])
        else { return nil }
        self.init(kind, worker: Int(worker), place: ConnectionID(slot: slot, generation: generation))
        guard description == text else { return nil }
    }

    package var description: String { "\(kind.rawValue)\(worker)-\(place.slot)-\(place.generation)" }
}

/// A fetch or a tunnel, as the admin server reports it.
package struct TransferReport: Sendable {
    /// What a transfer does now.
    package enum State: String, CaseIterable, Sendable {
        /// It waits for a connection to the origin.
        case connecting
        /// The origin has not answered yet. The body of the request may be on its way.
        case waiting
        case receiving
        /// Nothing is read from the origin: readers are behind, or the rate does not allow it.
        case held
        /// The transfer broke off, or was not answered. It goes on after a pause.
        case pausing
        /// A tunnel.
        case open
    }

    package var id: TransferID
    /// The ID of the request that the transfer began for. It is that of its line in the access log.
    package var requestID: String?
    /// The ID of the CONNECT in whose tunnel this request came. Nil outside of opened tunnels.
    package var tunnelID: String?
    /// The URI. Of a tunnel, host and port.
    package var uri: [UInt8]
    package var method: String
    /// The address of the client that asked first. Nil if nobody did, or if it came over a Unix socket.
    package var client: String?
    package var state: State
    package var age: Duration
    /// Bytes of the response's body so far; of a tunnel, those for the client.
    package var received: UInt64
    /// The length in bytes that the origin announced. Nil if unknown.
    package var expected: UInt64?
    /// Bytes of the request's body so far; of a tunnel, those from the client.
    package var sent: UInt64
    /// Clients that wait for the response or read it, as far as this fetch knows them.
    package var readers: Int
    package var isStored: Bool

    package init(
        id: TransferID, requestID: String?, tunnelID: String?, uri: [UInt8], method: String, client: String?,
        state: State, age: Duration, received: UInt64, expected: UInt64?, sent: UInt64, readers: Int, isStored: Bool
    ) {
        self.id = id
        self.requestID = requestID
        self.tunnelID = tunnelID
        self.uri = uri
        self.method = method
        self.client = client
        self.state = state
        self.age = age
        self.received = received
        self.expected = expected
        self.sent = sent
        self.readers = readers
        self.isStored = isStored
    }
}
