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
        if awaitsContinue {
            awaitsContinue = false
            stream.interim { $0 += Array("HTTP/1.1 100 Continue\r\n\r\n".utf8) }
        }
        upload(to: fetch)
    }

    /// Whether the client must send more of its body now. False while it may still be waiting for 100.
    var owesBody: Bool { isUploading && !awaitsContinue && stream.body?.isWhole == false }

    /// The client sent nothing for too long in the middle of its request.
    func requestBodyTimedOut() {
        cancelUpload()
        refuse(.requestTimeout)
    }

    /// The origin's socket has accepted everything that was sent.
    func mayUploadMore() { uploadMore() }

    /// Sends the content that has been received, and pauses the client while the origin is behind.
    func uploadMore() {
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
        cancelUpload()
        guard !isAnswered else { return stream.reset(.requestUnread) }
        self.excess = excess
        refuse(Refusal(excess))
    }

    private func cancelUpload() {
        isUploading = false
        fetch?.cutsRequest = true
        detachFetch()
    }

    /// Whether the answer was sent before the whole request was read. The connection cannot carry another request then.
    var leavesRequestUnread: Bool { stream.body?.isTaken == false }
}
