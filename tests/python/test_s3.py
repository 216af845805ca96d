"""What Python adds to object stores: the environment of the process as it is when a session is made."""

from __future__ import annotations

import pytest

import riverbed as rb


def test_keys_that_are_set_after_the_first_session_count(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    read = "SELECT * FROM 's3://bucket/x.parquet'"
    with rb.Session() as s, pytest.raises(rb.RiverbedSourceError, match="there are no AWS credentials"):
        s.sql(read)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "only-we-know")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with rb.Session() as s, pytest.raises(rb.RiverbedSourceError, match=r"127\.0\.0\.1:1 does not answer") as caught:
        s.sql(read)
    assert "only-we-know" not in str(caught.value)
