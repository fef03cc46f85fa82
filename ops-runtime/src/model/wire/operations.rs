//! The definitions of specs.

/// The JSON text of one of the definitions.
macro_rules! definition {
    (OperationSpec) => {
        r##"{
            "description": "An operation as data.",
            "type": "object",
            "properties": {
                "name": { "description": "Any text, unique in the namespace.", "type": "string", "minLength": 1 },
                "namespace": { "type": "string", "pattern": "^[^.]+$" },
                "version": { "type": "string" },
                "type": { "enum": ["query", "mutation", "subscription"] },
                "changes": {
                    "description": "For a subscription: true if a call may change something. Absent if the HTTP method decides.",
                    "type": "boolean"
                },
                "title": { "type": "string" },
                "description": { "type": "string" },
                "tags": { "type": "array", "items": { "type": "string" } },
                "inputSchema": { "$ref": "#/$defs/Schema" },
                "outputSchema": {
                    "description": "Of the data; of a subscription, of the data of one item.",
                    "$ref": "#/$defs/Schema"
                },
                "errorSchemas": { "type": "array", "items": { "$ref": "#/$defs/ErrorDefinition" } },
                "accessControl": { "$ref": "#/$defs/AccessControl" },
                "deprecated": { "type": "boolean" },
                "timeout": { "description": "In milliseconds.", "type": "number", "minimum": 0 },
                "retry": { "$ref": "#/$defs/RetryPolicy" },
                "binding": { "$ref": "#/$defs/Binding" },
                "_meta": { "description": "What an adapter or a user wants to keep.", "type": "object" }
            },
            "required": [
                "name", "namespace", "version", "type", "description", "inputSchema", "outputSchema", "accessControl"
            ]
        }"##
    };
    (AccessControl) => {
        r##"{
            "description": "What a caller needs.",
            "type": "object",
            "properties": {
                "requiredScopes": { "description": "All of these.", "type": "array", "items": { "type": "string" } },
                "requiredScopesAny": { "description": "One of these.", "type": "array", "items": { "type": "string" } },
                "resourceType": { "type": "string" },
                "resourceAction": { "type": "string" }
            },
            "required": ["requiredScopes"],
            "dependentRequired": { "resourceType": ["resourceAction"], "resourceAction": ["resourceType"] }
        }"##
    };
    (RetryPolicy) => {
        r##"{
            "description": "When and how often a failed attempt of a durable call is repeated.",
            "type": "object",
            "properties": {
                "attempts": { "description": "In all.", "type": "number", "minimum": 1 },
                "firstDelay": { "description": "In milliseconds; 1,000 if absent.", "type": "number", "minimum": 0 },
                "maxDelay": { "description": "In milliseconds; 300,000 if absent.", "type": "number", "minimum": 0 },
                "factor": {
                    "description": "By which each wait is longer than the one before; 2 if absent.",
                    "type": "number",
                    "minimum": 1
                },
                "codes": {
                    "description": "Codes that are repeated beside those of failures.",
                    "type": "array",
                    "items": { "type": "string" }
                },
                "deadline": {
                    "description": "Over all attempts, in milliseconds from the earliest start.",
                    "type": "number",
                    "minimum": 0
                }
            },
            "required": ["attempts"]
        }"##
    };
    (ErrorDefinition) => {
        r##"{
            "description": "An error that an operation declares.",
            "type": "object",
            "properties": {
                "code": { "type": "string" },
                "description": { "type": "string" },
                "schema": { "$ref": "#/$defs/Schema" },
                "httpStatus": { "type": "integer", "minimum": 0, "maximum": 65535 }
            },
            "required": ["code", "description", "schema"]
        }"##
    };
    (Schema) => {
        r##"{
            "description": "A JSON Schema (draft 2020-12) with its definitions.",
            "type": ["object", "boolean"]
        }"##
    };
    (Binding) => {
        r##"{
            "description": "How an operation is reached, told apart by `type`; by a handler of its process if absent.",
            "type": "object",
            "required": ["type"],
            "oneOf": [
                { "properties": { "type": { "const": "local" } } },
                { "properties": { "type": { "const": "http" } }, "$ref": "#/$defs/HttpBinding" },
                { "properties": { "type": { "const": "mcp" } }, "$ref": "#/$defs/McpBinding" }
            ]
        }"##
    };
    (HttpBinding) => {
        r##"{
            "description": "The HTTP request of an operation and the answers that it can get.",
            "type": "object",
            "properties": {
                "method": { "description": "In upper case.", "type": "string" },
                "path": { "description": "Below the server's URL, with `{name}` for each path parameter.", "type": "string" },
                "server": { "description": "A URL, with `{name}` for each variable.", "type": "string" },
                "serverVariables": { "type": "array", "items": { "$ref": "#/$defs/ServerVariable" } },
                "security": {
                    "description": "The ways to authenticate, of which one suffices.",
                    "type": "array",
                    "items": { "$ref": "#/$defs/SecurityRequirement" }
                },
                "parameters": { "type": "array", "items": { "$ref": "#/$defs/HttpParameter" } },
                "bodies": {
                    "description": "One for each content type, preferred first.",
                    "type": "array",
                    "items": { "$ref": "#/$defs/HttpBody" }
                },
                "contentType": {
                    "description": "The property of the input that names the content type of the body.",
                    "type": "string"
                },
                "responses": { "type": "array", "items": { "$ref": "#/$defs/HttpResponse" } }
            },
            "required": ["method", "path"]
        }"##
    };
    (McpBinding) => {
        r##"{
            "description": "The tool of an MCP server.",
            "type": "object",
            "properties": {
                "tool": { "type": "string" },
                "output": {
                    "description": "Where the output stands: the content blocks, the structured content, or its property `result`.",
                    "enum": ["content", "structured", "wrapped"]
                }
            },
            "required": ["tool", "output"]
        }"##
    };
    (ServerVariable) => {
        r##"{
            "description": "A variable of a server's URL.",
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "default": { "type": "string" },
                "values": { "description": "Absent: any.", "type": "array", "items": { "type": "string" } }
            },
            "required": ["name", "default"]
        }"##
    };
    (SecurityRequirement) => {
        r##"{
            "description": "Schemes that are needed together; without any, anonymous calls are allowed.",
            "type": "object",
            "properties": { "schemes": { "type": "array", "items": { "$ref": "#/$defs/SecurityScheme" } } }
        }"##
    };
    (SecurityScheme) => {
        r##"{
            "description": "A security scheme, under its name in the document.",
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "type": {
                    "description": "`basic`, `bearer`, `apiKey`, `oauth2`, `openIdConnect`, or the name of another.",
                    "type": "string"
                },
                "in": { "description": "Of `apiKey`.", "enum": ["header", "query", "cookie"] },
                "parameter": { "description": "Of `apiKey`: the header, parameter or cookie.", "type": "string" },
                "url": {
                    "description": "Of `oauth2`: where tokens come from; of `openIdConnect`: the provider.",
                    "type": "string"
                },
                "scopes": { "type": "array", "items": { "type": "string" } }
            },
            "required": ["name", "type"]
        }"##
    };
    (HttpField) => {
        r##"{
            "description": "How a field of a form or a part of a multipart body is written.",
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "contentType": { "type": "string" },
                "style": { "type": "string" },
                "explode": { "description": "Absent: whether the style is `form`.", "type": "boolean" },
                "allowReserved": { "description": "Absent: false.", "type": "boolean" }
            },
            "required": ["name"]
        }"##
    };
    (HttpParameter) => {
        r##"{
            "description": "Where a property of the input goes, with the defaults of OpenAPI.",
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "in": { "enum": ["path", "query", "header", "cookie", "querystring"] },
                "property": { "description": "The property of the input, if it is not `name`.", "type": "string" },
                "style": {
                    "description": "Absent: `simple` in paths and headers, `form` in queries and cookies.",
                    "enum": [
                        "simple", "form", "label", "matrix", "spaceDelimited", "pipeDelimited", "deepObject", "json"
                    ]
                },
                "explode": { "description": "Absent: whether the style is `form`.", "type": "boolean" },
                "allowReserved": { "description": "Absent: false.", "type": "boolean" },
                "fixed": {
                    "description": "The value that every request has; the input has no such property then.",
                    "type": ["boolean", "string"]
                }
            },
            "required": ["name", "in"]
        }"##
    };
    (HttpBody) => {
        r##"{
            "description": "The request body in one content type.",
            "type": "object",
            "properties": {
                "contentType": { "type": "string" },
                "property": {
                    "description": "The property of the input, if it is not `body`. Empty: the rest of the input.",
                    "type": "string"
                },
                "fields": {
                    "description": "Fields that are written otherwise than by default.",
                    "type": "array",
                    "items": { "$ref": "#/$defs/HttpField" }
                },
                "fixed": {
                    "description": "Properties that the operation sets itself: no input may hold them.",
                    "type": "array",
                    "items": { "$ref": "#/$defs/HttpFixed" }
                },
                "variant": {
                    "description": "Position of the body's schema in the property's `oneOf`. Absent: the property's whole schema.",
                    "type": "integer",
                    "minimum": 0
                }
            },
            "required": ["contentType"]
        }"##
    };
    (HttpFixed) => {
        r##"{
            "description": "A property of the body that the operation sets itself.",
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "value": { "description": "Absent: the property is never sent.", "type": ["boolean", "string"] }
            },
            "required": ["name"]
        }"##
    };
    (HttpResponse) => {
        r##"{
            "description": "An answer that the document describes.",
            "type": "object",
            "properties": {
                "status": {
                    "description": "A status, a class of statuses such as `4XX`, or `default`.",
                    "type": "string",
                    "pattern": "^([0-9]{1,5}|[0-9]+XX|default)$"
                },
                "contentType": { "description": "Absent: no body.", "type": "string" },
                "variant": { "description": "Which alternative of the output it is.", "type": "integer", "minimum": 0 },
                "wholeEvent": { "description": "Absent: false.", "type": "boolean" }
            },
            "required": ["status"]
        }"##
    };
    ($($other:tt)*) => {
        $crate::model::wire::events::definition!($($other)*)
    };
}

pub(super) use definition;
