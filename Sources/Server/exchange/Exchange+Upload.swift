import Framing
import Message
import Transaction

/// The request's body on its way to the origin.
extension Exchange {
    func upload(to fetch: Fetch) {
        isUploading = true
        stream.uploadSoon()
    }

    /// The next move is the client's: it has a body to send and nothing to wait for.
    var owesBody: Bool { isUploading && !awaitsContinue && stream.body?.isWhole == false }

    /// The client stopped in the middle of its request.
    func requestBodyTimedOut() {
        cancelUpload()
        refuse(.requestTimeout)
    }

    /// The origin took what was sent.
    func mayUploadMore() { uploadMore() }

    func uploadMore() {
        guard isUploading, let fetch, let body = stream.body else { return }
        do throws(FramingError) {
            let wantsMore = unsafe try body.take { unsafe fetch.sendBody($0) }
            guard isUploading else { return }
            if body.isTaken {
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

    private func cancelUpload() {
        isUploading = false
        detachFetch()
    }

    /// The answer is out before the whole request was in: the connection cannot be used further.
    var leavesRequestUnread: Bool { stream.body?.isTaken == false }
}
