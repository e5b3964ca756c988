import Accounts

extension AccessLogBuffer {
    /// - Parameter redirectedTo: the URI where redirects led that Larder followed. Nil if it followed none.
    func append(_ account: Account, request: OwnedRequest, redirectedTo: [UInt8]? = nil) {
        unsafe request.bytes.withUnsafeBufferPointer {
            unsafe append(
                account, head: LoggedHead(request.head), $0, client: request.client,
                listener: request.listener?.nameInLog, user: request.identity?.name, redirectedTo: redirectedTo,
                received: request.receivedTarget)
        }
    }
}
