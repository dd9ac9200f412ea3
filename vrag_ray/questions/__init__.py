"""Questions of known answers: their files, their gold places, and what an answer is worth."""
