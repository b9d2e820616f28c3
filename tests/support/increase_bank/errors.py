"""The errors that Increase documents, as exceptions that the server answers."""

from __future__ import annotations

from typing import Any, ClassVar


class ApiError(Exception):
    """An error of the API. `fields` are those of its type beyond the common ones."""

    status: ClassVar[int]
    type: ClassVar[str]
    title: ClassVar[str]

    def __init__(self, detail: str | None = None, **fields: Any) -> None:
        super().__init__(detail or self.title)
        self.detail = detail
        self.fields = fields

    def document(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "type": self.type,
            "title": self.title,
            "detail": self.detail,
            **self.fields,
        }


class InvalidParameters(ApiError):
    status = 400
    type = "invalid_parameters_error"
    title = "Your request contains invalid parameters."

    def __init__(self, errors: list[dict[str, str]], detail: str | None = None) -> None:
        super().__init__(detail, errors=errors)

    @classmethod
    def of(cls, field: str, message: str) -> InvalidParameters:
        return cls([{"field": field, "message": message}], f"{field}: {message}")


class MalformedRequest(ApiError):
    status = 400
    type = "malformed_request_error"
    title = "Your request is malformed."


class InvalidApiKey(ApiError):
    status = 401
    type = "invalid_api_key_error"
    title = "Your API key is invalid."


class InsufficientPermissions(ApiError):
    status = 403
    type = "insufficient_permissions_error"
    title = "Your API key may not do this."


class PrivateFeature(ApiError):
    status = 403
    type = "private_feature_error"
    title = "This feature is not enabled for your group."


class ObjectNotFound(ApiError):
    status = 404
    type = "object_not_found_error"
    title = "Could not find the specified object."


class ApiMethodNotFound(ApiError):
    status = 404
    type = "api_method_not_found_error"
    title = "There is no such API method."


class KeyAlreadyUsed(ApiError):
    status = 409
    type = "idempotency_key_already_used_error"
    title = "The idempotency key was used for another request."

    def __init__(self, resource_id: str) -> None:
        super().__init__(None, resource_id=resource_id)


class InvalidOperation(ApiError):
    status = 409
    type = "invalid_operation_error"
    title = "The operation is not possible in the object's state."


class RateLimited(ApiError):
    status = 429
    type = "rate_limited_error"
    title = "Too many requests."

    def __init__(self, retry_after: int, *, has_header: bool = True) -> None:
        super().__init__(None, retry_after=retry_after)
        self.has_header = has_header


class InternalError(ApiError):
    status = 500
    type = "internal_server_error"
    title = "Something went wrong at Increase."
