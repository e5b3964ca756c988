public import Message

/// What a line of the access log takes from the head of a request.
///
/// It has nothing that is counted or freed, and its initializer is inlined: a hit copies no fields for its line.
@usableFromInline
package struct LoggedHead {
    @usableFromInline let methodRange: Range<Int>
    @usableFromInline let targetRange: Range<Int>
    @usableFromInline let target: RequestTarget

    @inlinable
    package init(_ head: RequestHead) {
        methodRange = head.methodRange
        targetRange = head.targetRange
        target = head.target
    }
}
