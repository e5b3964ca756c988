import Access
import Caching
import EventLoop
import Framing
import Glibc
import Message
import Storage
import Transaction

/// The request's body on its way to the origin.
extension Exchange {
    func upload(to fetch: Fetch) {
        upload = RequestUpload(request.bodyLength, limits: snapshot.limits)
        self.fetch = fetch
        stream.uploadSoon()
    }

    /// The next move is the client's: it has a body to send and nothing to wait for.
    var owesBody: Bool { isUploading && !awaitsContinue }

    /// The client stopped in the middle of its request.
    func bodyIsLate() {
        let fetch = self.fetch
        self.fetch = nil
        fetch?.clientLeft()
        refuse(.requestTimeout)
    }

    var isUploading: Bool { upload.map { !$0.isComplete } ?? false }

    func mayUploadMore() {
        guard isUploading else { return }
        uploadMore()
    }

    func uploadMore() {
        guard isUploading, let fetch else { return }
        do throws(FramingError) {
            var inbound = stream.takeInbound()
            defer { stream.putBack(inbound) }
            let wantsMore = try upload!.send(&inbound, to: fetch)
            if wantsMore { stream.resumeReading() } else { stream.pauseReading() }
        } catch {
            worker.counters.count(error)
            stream.persists = false
            let fetch = self.fetch
            self.fetch = nil
            fetch?.clientLeft()
            guard !isAnswered else { return stream.reset() }
            refuse(.malformedRequestBody)
        }
    }

    /// The answer is out before the whole request was in: the connection can not be used further.
    var leavesRequestUnread: Bool { request.hasBody && upload?.isComplete != true }
}
