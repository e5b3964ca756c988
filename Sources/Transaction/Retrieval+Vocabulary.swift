package import Caching
package import Message

extension Retrieval {
    /// What the driver reports, beside final heads (`on(head:)`).
    package enum Event: Sendable {
        /// The first event.
        case start
        /// A connection is ready. `isReused`: it has carried requests before, and may be dead.
        case opened(isReused: Bool)
        /// No connection could be opened, for this reason.
        case notOpened(Refusal)
        /// An interim (1xx) head other than 101.
        case interim
        /// A 101: the origin switches protocols.
        case switched
        /// The bytes received in place of a head violate HTTP.
        case invalidHead
        /// The sink that `store` or `storePart` asked for was made.
        case stored
        /// The store has no room, or the response was invalidated in the meantime.
        case notStored(NotStoredReason)
        /// So many bytes of the body were received. They are not in the sink yet.
        case received(Int)
        /// The body is complete by its framing. `byClosing`: the end of the connection ended it.
        case ended(byClosing: Bool)
        /// The connection ended or failed before the end of the body, or the framing is invalid.
        case brokeOff
        /// The sink accepts no more bytes.
        case sinkFull
        /// The connection ended or failed before a final head. `headBegan`: part of a head had been received.
        case closed(headBegan: Bool)
        /// The connection ended before any byte of an answer, for a reason that is known.
        case notAnswered(Refusal)
        /// The final head asks for credentials, and Larder has some for this origin, or for the next proxy. The request can be sent again.
        /// `atLimit`: the refusal if that has happened too often.
        case challenged(atLimit: Refusal)
        /// A next proxy does not accept Larder's log-in, and another route is left. No byte has reached the origin.
        case routeFailed
        /// The origin does not know `Expect: 100-continue` (417), which Larder has asked for itself. The content of the request has not been
        /// sent, so the request can be sent again, once (RFC 9110 §10.1.1).
        case expectationFailed
        /// The time limit of the present phase, or the pause before a resumption or another attempt, is over.
        case timedOut
        /// The time limit of the whole response is over.
        case outOfTime
        /// There must be no other attempt: too many other requests have been repeated.
        case retryRefused
        /// The client left. `isStillNeeded`: the store, followers or other readers still need the response.
        case clientLeft(isStillNeeded: Bool)
        /// The process stops.
        case cancelled
        /// An administrator ends the retrieval. `isShared`: other clients read the body as well. It ends for them, too, so the part is not kept: they
        /// would ask for its rest.
        case stopped(isShared: Bool)
    }

    /// A final head, with what the driver derived from it.
    package struct Head: Sendable {
        package let status: UInt16
        /// All fields as received, end-to-end and hop-by-hop.
        package let fields: Fields
        /// The end-to-end fields, with `Date`, of a response to a range request. Nil for other responses.
        package let endToEnd: Fields?
        /// The length of the body in bytes, if the framing announces it.
        package let length: UInt64?
        /// How the rules say that a response of this type is handled.
        package let handling: CacheHandling
        /// What the rules say beyond the handling.
        package let particulars: HandlingParticulars?
        /// Another node of the fleet sent it, and says that its response is stale. It confirms nothing, and is not stored.
        package let isStale: Bool
        package let receivedAt: WallTime

        package init(
            status: UInt16, fields: Fields, endToEnd: Fields?, length: UInt64?, handling: CacheHandling,
            particulars: HandlingParticulars? = nil, isStale: Bool = false, receivedAt: WallTime
        ) {
            self.status = status
            self.fields = fields
            self.endToEnd = endToEnd
            self.length = length
            self.handling = handling
            self.particulars = particulars
            self.isStale = isStale
            self.receivedAt = receivedAt
        }
    }

    /// What the driver does next.
    package enum Action: Equatable, Sendable {
        case none
        /// Ask for a connection: `opened` or `notOpened` follows. `mayReuse`: it may be a pooled one.
        case open(mayReuse: Bool)
        /// Close the connection and wait so many milliseconds before asking for the rest: `timedOut` follows.
        case pause(milliseconds: Int)
        /// Close the connection if there is one, and wait a moment before the request is sent again: `timedOut` follows, or `retryRefused` at
        /// once. `attempt`: 1 for the first repetition.
        case retry(attempt: Int)
        /// Send the request, with `conditions`.
        case send
        /// Pass the interim head to the client, which still waits for its final head.
        case passInterim
        /// Give the origin's socket to the client, as a tunnel.
        case switchProtocols
        /// Store the response (`responseToStore`) and serve it from the store while it arrives: `stored` or `notStored` follows.
        /// `invalidates`: first remove the responses that are stored for the target (RFC 9111 §4.4).
        case store(invalidates: Bool)
        /// Store the response as a part of the whole: `stored` or `notStored` follows.
        indirect case storePart(StorablePart)
        /// A 304 confirmed the stored response: renew its head and serve it (RFC 9111 §4.3.4).
        case freshen(Confirmed)
        /// Serve the stale stored response, because the origin failed. `status`: the origin's status code, 0 if it sent none. If the
        /// machine is finished, close the connection.
        case serveStale(status: UInt16)
        /// Pass the response on to the client alone.
        case pass(Passing)
        /// The missing bytes follow. `isFirst`: the client has no head yet, and its answer begins with these bytes.
        case fill(isFirst: Bool)
        /// The rest of the body follows, for the same sink.
        case goOn
        /// Pass the received bytes to the sink.
        case deliver
        /// Mark the selected stored response as outdated, because the 304 did not select it. Close the connection and ask for
        /// another. The response stays stored, to be served if the origin fails (RFC 9111 §4.2.4).
        case outdateSelected
        /// Release the claim on the hole, which the origin cannot fill. `removesStored`: remove the stored response as well,
        /// because the origin has another representation by now. Then perform the enclosed action.
        indirect case abandonHole(removesStored: Bool, then: Action)
        /// The connection was dead: close it and ask for a new one.
        case reopen
        /// The request goes out again, with credentials: give the connection back and ask for one.
        case askAgain
        case finish(Ending)
    }

    /// Which stored response a 304 confirms.
    package enum Confirmed: Equatable, Sendable {
        case selected
        case candidate(Int)
    }

    /// A response that is passed on to the client alone.
    package struct Passing: Equatable, Sendable {
        /// Why the response is not stored. Nil if another response did not come as expected.
        package let notStored: NotStoredReason?
        /// Remove the responses that are stored for the target (RFC 9111 §4.4).
        package let invalidates: Bool
        /// The response to a HEAD may update the stored response to GET (RFC 9111 §4.3.5).
        package let updatesStored: Bool
        /// The length of the whole of which this is a part, in bytes, if the whole is worth asking for: a digest proves it, and not the part.
        package let wantedWhole: UInt64?

        /// Whether the response is for this client because of what it says.
        package var refutesSharing: Bool { notStored?.isPassing == false }

        package init(
            notStored: NotStoredReason?, invalidates: Bool, updatesStored: Bool, wantedWhole: UInt64? = nil
        ) {
            self.notStored = notStored
            self.invalidates = invalidates
            self.updatesStored = updatesStored
            self.wantedWhole = wantedWhole
        }
    }

    /// How a retrieval ends.
    package enum Ending: Equatable, Sendable {
        /// The body is complete.
        case whole
        /// The origin gave no answer. The client has no final head yet, and gets the refusal.
        case failed(Refusal)
        /// The body cannot be completed. `keepsPart`: what was received of it stays stored.
        case brokenOff(keepsPart: Bool)
        /// Nobody needs the response any more, or the process stops.
        case abandoned
    }
}
