import Framing
import Limiting
import Message
import Transaction

/// Sends the request's body to the origin.
///
/// The session appends to the `InboundBody`, this takes from it and gives it to the fetch. The fetch may end in the middle of that, because
/// the origin closed the connection or answered early; `isUploading` is false then.
extension Exchange {
    /// Begins. The fetch has sent the head.
    func upload(to fetch: Fetch) {
        precondition(stream.body != nil, "a request without a body sends none")
        precondition(self.fetch === fetch, "a body goes to the fetch of its own exchange")
        isUploading = true
        stream.uploadSoon()
    }

    /// Begins, before the origin has seen anything of the request. A client that waits for a 100 gets it from Larder (RFC 9110 §10.1.1).
    func uploadAtOnce(to fetch: Fetch) {
        sendContinue()
        upload(to: fetch)
    }

    /// Has a client send its body that waits for a 100.
    func sendContinue() {
        guard awaitsContinue else { return }
        awaitsContinue = false
        stream.interim { $0 += Array("HTTP/1.1 100 Continue\r\n\r\n".utf8) }
    }

    /// Whether the client must send more of its body now. False while it may still be waiting for 100. A client that has begun without one
    /// (RFC 9110 §10.1.1) waits for nothing.
    var owesBody: Bool {
        guard let body = stream.body, !body.isWhole else { return false }
        return isUploading && (!awaitsContinue || body.contentBytes > 0) || discardsBody || awaitsCoveredBody
    }

    /// The client sent nothing for too long in the middle of its request, or too little. The origin must not take what it has for all of it.
    func requestBodyTimedOut() {
        fetch?.cutsRequest = true
        cancelUpload()
        refuse(.requestTimeout)
    }

    /// The origin's socket has accepted everything that was sent.
    func mayUploadMore() { uploadMore() }

    /// Sends the content that has been received, and pauses the client while the origin is behind.
    func uploadMore() {
        if discardsBody { return discardMore() }
        if awaitsCoveredBody { return coveredBodyGrew() }
        guard isUploading, let fetch, let body = stream.body else { return }
        do throws(FramingError) {
            var excess: LimitExcess?
            let wantsMore = unsafe try body.take { bytes in
                excess = noteUploaded(bytes.count)
                return unsafe excess == nil ? fetch.sendBody(bytes) : true
            }
            if let excess { return cutUpload(excess) }
            guard isUploading else { return }
            if body.isTaken {
                // Before the end is sent. `drained` may still ask for more later, and finds nothing left to send.
                isUploading = false
                fetch.endBody(trailers: body.trailers)
                return stream.resumeReading()
            }
            wantsMore ? stream.resumeReading() : stream.pauseReading()
        } catch {
            worker.counters.count(error)
            stream.closeAfterwards(.malformedBody)
            cancelUpload()
            guard !isAnswered else { return stream.reset(.malformedBody) }
            refuse(.malformedRequestBody)
        }
    }

    /// The body of the request is longer than a limit allows. The origin must not take what it has for all of it.
    private func cutUpload(_ excess: LimitExcess) {
        stream.closeAfterwards(.requestUnread)
        fetch?.cutsRequest = true
        cancelUpload()
        guard !isAnswered else { return stream.reset(.requestUnread) }
        self.excess = excess
        refuse(Refusal(excess))
    }

    private func cancelUpload() {
        isUploading = false
        if awaitsCoveredBody { waiting = .nothing }
        detachFetch()
    }

    // MARK: a body that nobody wants

    /// So many bytes of a refused body are read and dropped.
    static let discardedBytesMax = 1 << 20

    /// Decides what becomes of the rest of the body of a refused request.
    ///
    /// Who is asked for credentials sends the request again, on this connection if it can. So the body is dropped if it is small: its client
    /// has to send it before the next request, even one that waited for a 100 and got the final answer (RFC 9110 §10.1.1). A larger one is not
    /// read, and the connection closes: its bytes would be taken for the next request (RFC 9112 §9.3).
    func leaveBody(becauseOf refusal: Refusal) {
        isUploading = false
        let length: UInt64 = if case .length(let count) = request.bodyLength { count } else { 0 }
        guard refusal.status == 407 || refusal.status == 403, length <= Exchange.discardedBytesMax,
            stream.body?.violation == nil
        else { return stream.closeAfterwards(.requestUnread) }
        awaitsContinue = false
        discardAllowance = Exchange.discardedBytesMax
    }

    /// Whether the answer stands, and the rest of the body is being dropped.
    var discardsBody: Bool { discardAllowance != nil }

    private func discardMore() {
        guard let allowance = discardAllowance, let body = stream.body else { return }
        var rest = allowance
        do throws(FramingError) {
            _ = unsafe try body.take {
                rest -= $0.count
                return true
            }
        } catch {
            worker.counters.count(error)
            stream.closeAfterwards(.malformedBody)
            rest = -1
        }
        let isOver = rest < 0 || body.isTaken
        discardAllowance = isOver ? nil : rest
        // The response ends with the request, or without it: `leavesRequestUnread` closes the connection then.
        isOver ? stream.flush() : stream.resumeReading()
    }

    /// Decides before the head is written that the connection closes behind it, if the request has not been read to its end: the head has to say so
    /// (RFC 9112 §9.6), or the client would send its next request on a connection that closes.
    func announceUnreadBody() {
        if leavesRequestUnread, !discardsBody { stream.closeAfterwards(.requestUnread) }
    }

    /// Whether the answer was sent before the whole request was read. The connection cannot carry another request then.
    var leavesRequestUnread: Bool { stream.body?.isTaken == false }
}
