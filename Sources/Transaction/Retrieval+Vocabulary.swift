package import Caching
package import Message

extension Retrieval {
    /// What the driver reports.
    package enum Event: Sendable {
        case start
        /// There is a connection. `isReused`: it carried requests before, and may be dead.
        case opened(isReused: Bool)
        /// There will be no connection.
        case notOpened(Refusal)
        /// An interim (1xx) head, but 101.
        case interim
        /// 101: the origin is ready to speak another protocol.
        case switched
        /// What came in place of a head is no HTTP.
        case invalidHead
        /// A final head.
        case head(Head)
        /// The sink that `store` or `storePart` asked for is there.
        case stored
        /// The store has no room, or what came is outdated by now.
        case notStored
        /// So many bytes of the body came; they have not gone to the sink yet.
        case received(Int)
        /// The framing says that the body is whole. `byClosing`: it lasts until the connection ends.
        case ended(byClosing: Bool)
        /// The body stopped before its end, or its framing is broken.
        case brokeOff
        /// The sink takes no more.
        case sinkFull
        /// The connection closed, or failed, before a final head. `headBegan`: a part of one had come.
        case closed(headBegan: Bool)
        case timedOut
        /// The client left. `othersGain`: the transfer goes on for the store, for followers or for other readers.
        case clientLeft(othersGain: Bool)
        /// The process stops.
        case cancelled
    }

    /// A final head and what the driver knows of it.
    package struct Head: Sendable {
        package let status: UInt16
        /// End-to-end and hop-by-hop fields, as they came.
        package let fields: Fields
        /// Those that may be stored: end-to-end, with `Date`.
        package let endToEnd: Fields?
        /// Bytes of the body as its framing announces them; nil: not announced.
        package let length: UInt64?
        /// What the rules say of a response of this type.
        package let handling: CacheHandling
        package let receivedAt: WallTime

        package init(
            status: UInt16, fields: Fields, endToEnd: Fields?, length: UInt64?, handling: CacheHandling,
            receivedAt: WallTime
        ) {
            self.status = status
            self.fields = fields
            self.endToEnd = endToEnd
            self.length = length
            self.handling = handling
            self.receivedAt = receivedAt
        }
    }

    /// What the driver does next.
    package enum Action: Equatable, Sendable {
        case none
        /// Ask for a connection: `opened` or `notOpened` follows.
        case open
        /// Give up the connection and wait so many milliseconds before asking for the rest: `timedOut` follows.
        case pause(milliseconds: Int)
        /// Send the request, with `conditions`.
        case send
        /// Pass the interim head on to the client. Nothing of a final answer has gone to it.
        case passInterim
        case switchProtocols
        /// Store the response (`responseToStore`) and serve it from the store while it arrives: `stored` or `notStored` follows.
        /// `invalidates`: what is stored for the target goes first (RFC 9111 §4.4).
        case store(invalidates: Bool)
        /// Store the part, as a part of the whole: `stored` or `notStored` follows.
        indirect case storePart(StorablePart)
        /// The stored response is confirmed (304): renew its head and serve it (RFC 9111 §4.3.4).
        case freshen(Confirmed)
        /// Serve the stale stored response, because the origin failed. `status`: what the origin said; 0: nothing. Where the
        /// machine is finished by then, nothing more is read from the connection.
        case serveStale(status: UInt16)
        /// Pass the response on to the client alone.
        case pass(Passing)
        /// The bytes that are missing come now. `isFirst`: the client's answer begins with them.
        case fill(isFirst: Bool)
        /// The rest of the body comes now, for the same sink.
        case goOn
        /// Hand the bytes that were received to the sink.
        case deliver
        /// Mark the selected stored response, of which the 304 does not speak, as outdated, close the connection and ask for
        /// another. The stored response stays, to stand in where the origin fails (RFC 9111 §4.2.4).
        case outdateSelected
        /// The hole cannot be filled from this origin. Give it up; `removesStored`: the stored response as well, because the
        /// origin has another representation by now. Then do what follows.
        indirect case abandonHole(removesStored: Bool, then: Action)
        /// The connection was dead: close it and ask for another.
        case reopen
        case finish(Ending)
    }

    /// Which stored response a 304 confirms.
    package enum Confirmed: Equatable, Sendable {
        case selected
        case candidate(Int)
    }

    package struct Passing: Equatable, Sendable {
        /// Why it is not stored; nil: the store had no room.
        package let notStored: NotStoredReason?
        /// Stored responses of the target are invalid from now on (RFC 9111 §4.4).
        package let invalidates: Bool
        /// The answer to a HEAD tells of the stored response to GET (RFC 9111 §4.3.5).
        package let updatesStored: Bool

        package init(notStored: NotStoredReason?, invalidates: Bool, updatesStored: Bool) {
            self.notStored = notStored
            self.invalidates = invalidates
            self.updatesStored = updatesStored
        }
    }

    /// How a retrieval ends.
    package enum Ending: Equatable, Sendable {
        /// The body is whole.
        case whole
        /// The origin gave no answer. Nothing has gone to the client, who gets the refusal.
        case failed(Refusal)
        /// The body cannot be completed. What came of it stays stored where `keepsPart`.
        case brokenOff(keepsPart: Bool)
        /// Nobody gains by it any more.
        case abandoned
    }
}
